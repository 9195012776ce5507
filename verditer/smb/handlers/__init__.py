"""The commands on files and directories, one module each: a request becomes calls of `services/file`, their result an answer."""
