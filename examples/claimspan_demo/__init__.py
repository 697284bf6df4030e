"""A real RAG pipeline over the handbook of a company, evaluated by claimspan."""
