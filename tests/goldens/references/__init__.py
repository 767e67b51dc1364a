"""What NumPy and PyTorch say about every op case, a file a family as op_cases_*.cc."""
