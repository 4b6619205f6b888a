"""`dpl lsp`: the language server.

positions   offsets <-> lines and characters, as clients count them
pages       a text -> pages: declarations that are parsed once and keep their spans while the text around them changes
unfinished  tokens of an incomplete declaration -> a syntax tree
names       trees -> the target of each name within a declaration
checking    pages -> types; a page is checked again only if its text or something that it mentions changed
documents   the open texts and the files on disk
links       the targets of names across declarations and modules
server      requests -> answers; features/ has a file for each kind of request
"""
