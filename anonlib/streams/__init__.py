"""The only place that knows the order of a stream: read, play, stage, audit, show, batch after batch."""
