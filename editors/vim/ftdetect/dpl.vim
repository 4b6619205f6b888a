autocmd BufNewFile,BufRead *.dp setfiletype dpl
