"""Which version of bunraku this is; it goes into every file that bunraku makes."""

VERSION = "0.1.0"
