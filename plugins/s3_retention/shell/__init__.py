"""What an operator asks from a shell: each command reads the ledger, prints a table or JSON, and changes nothing."""
