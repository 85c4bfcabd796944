"""Records of an export (ETRecord), for the developer tools of Rushlight and ExecuTorch."""
