"""Language models: from a model to a file, and from a file to text."""
