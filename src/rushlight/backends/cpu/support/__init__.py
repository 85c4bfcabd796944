"""What the partitioner asks about calls: sizes that are dynamic, values that are quantised."""
