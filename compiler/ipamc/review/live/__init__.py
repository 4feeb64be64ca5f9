"""What a cluster has against what is rendered for it; what `ipamc ci apply` may write, and how it went.

Pure: objects as kubectl prints them in, decisions out. kubectl itself is in `workspace/kubectl.py`.
"""
