"""Pure text and pictures from a report."""
