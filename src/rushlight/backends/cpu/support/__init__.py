"""The partitioner's checks of calls: dynamic sizes, quantised values."""
