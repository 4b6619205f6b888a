" DPL: comments, indentation, and `dpl fmt` for gq.
if exists("b:did_ftplugin")
  finish
endif
let b:did_ftplugin = 1

setlocal commentstring=--\ %s
setlocal comments=sr:(*,mb:*,ex:*),:--\ \|,:--
setlocal expandtab shiftwidth=2 softtabstop=2
setlocal iskeyword=@,48-57,_,',192-255
setlocal suffixesadd=.dp
setlocal formatprg=dpl\ fmt\ -

let b:undo_ftplugin = "setlocal commentstring< comments< expandtab< shiftwidth< softtabstop< iskeyword< suffixesadd< formatprg<"
