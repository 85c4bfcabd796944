"""What is improved in a graph that is built."""
