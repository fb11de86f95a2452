"""The command `bunraku`: parses arguments, calls `bunraku.api`, prints."""
