"""The libraries that answer for networks on the processor, beside torch."""
