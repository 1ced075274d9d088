"""The store: lists, looks and deletes; what happened to an object is an ``Outcome``, never an exception."""
