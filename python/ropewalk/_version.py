"""The version of ropewalk. It stands here alone: CMake and pip read it from this file."""

__version__ = "0.1.0"
