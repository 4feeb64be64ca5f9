"""The page that `ipamc report` and `ipamc plan --output html` write.

page        the document: its parts, its security policy
data        a cluster as columns of numbers, which the script of the page reads
summary     the tables that are there without a script
"""
