"""Rules of files and directories: names, attributes, times, security descriptors, share modes."""
