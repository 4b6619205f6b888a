"""`dpl lsp`: the language server.

positions   offsets <-> lines and characters, as clients count them
pages       a text -> pages: declarations that are read once and keep their places while the text around them changes
unfinished  tokens of half a declaration -> a tree of what is there
names       trees -> what each name refers to, inside a declaration
checking    pages -> types; only those are checked whose text changed, or something that they mention
documents   the open texts and the files on disk
links       what names refer to across declarations and modules
server      requests -> answers, each kind from the file named after it
"""
