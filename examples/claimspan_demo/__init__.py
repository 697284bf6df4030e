"""A real RAG pipeline over the Python language reference, evaluated by claimspan."""
