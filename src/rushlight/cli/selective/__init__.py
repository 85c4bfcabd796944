"""The commands of selective builds."""
