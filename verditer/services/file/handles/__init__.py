"""Open handles on files and directories: what an SMB client does with them, and what REST shows of them and may end."""
