"""Where candidates come from: each source gives pages of object facts, and never an empty page for an error."""
