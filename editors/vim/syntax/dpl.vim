" DPL: comments nest, strings hold expressions.
if exists("b:current_syntax")
  finish
endif

syntax case match
syntax iskeyword @,48-57,_,',192-255

syntax keyword dplDeclare    let rec and type of import as open extern export do expect
syntax keyword dplConditional if then else match with when
syntax keyword dplRepeat     loop for while in
syntax keyword dplKeyword    begin end fun reset shift
syntax keyword dplBoolean    true false
syntax keyword dplOperator   not
syntax keyword dplWildcard   _
syntax keyword dplType       bool int i8 i16 i32 i64 u8 u16 u32 u64 float f16 f32 f64 string unit
syntax keyword dplDerivative grad value_and_grad vjp jvp diff stop_grad checkpoint checkpoint_loop with_vjp with_jvp

syntax match   dplConstructor "\<\u\k*\>"
syntax match   dplModule      "\<\u\k*\ze\.\k"
syntax match   dplTypeVar     "\%(\k\)\@<!'\a\w*"
syntax match   dplSign        "[-!$%&*+./<=>?@^|~:]\+"
syntax match   dplFunction    "\%(\<\%(let\|and\)\s\+\%(rec\s\+\)\?\)\@<=\l\k*\ze\s\+[[:alnum:]_(\[{\"]"

syntax match   dplNumber "\<\d[0-9_]*\%([iu]\d\+\)\?\>"
syntax match   dplNumber "\<0[xX][0-9a-fA-F_]\+\%([iu]\d\+\)\?\>"
syntax match   dplNumber "\<0[bB][01_]\+\%([iu]\d\+\)\?\>"
syntax match   dplNumber "\<0[oO][0-7_]\+\%([iu]\d\+\)\?\>"
syntax match   dplFloat  "\<\d[0-9_]*\.[0-9_]*\%([eE][+-]\?\d[0-9_]*\)\?\%(f\d\+\)\?"
syntax match   dplFloat  "\<\d[0-9_]*[eE][+-]\?\d[0-9_]*\%(f\d\+\)\?\>"
syntax match   dplFloat  "\<\d[0-9_]*f\d\+\>"

syntax match   dplEscape  contained "\\\%(u{\x\{1,6}}\|[ntr0\"'\\{}]\|$\)"
syntax match   dplBrace   contained "{{\|}}"
syntax match   dplFormat  contained ":[^}:=][^}]*\ze}"
syntax region  dplString  start=+"+ skip=+\\.+ end=+"+ contains=dplEscape
syntax region  dplHole    contained matchgroup=dplSpecial start=+{+ end=+}+ contains=TOP,dplFormat
syntax region  dplNested  contained containedin=dplHole,dplNested start=+[([{]+ end=+[])}]+ contains=TOP
syntax region  dplString  matchgroup=dplString start=+\$"+ skip=+\\.+ end=+"+ contains=dplEscape,dplBrace,dplHole

syntax keyword dplTodo    contained TODO FIXME XXX
syntax match   dplComment "--.*$" contains=dplTodo,@Spell
syntax match   dplDoc     "-- |.*$" contains=dplTodo,@Spell
syntax region  dplSkipped contained start=+"+ skip=+\\.+ end=+"+ oneline
syntax region  dplComment start="(\*" end="\*)" contains=dplComment,dplSkipped,dplTodo,@Spell

highlight default link dplDeclare     Statement
highlight default link dplConditional Conditional
highlight default link dplRepeat      Repeat
highlight default link dplKeyword     Keyword
highlight default link dplBoolean     Boolean
highlight default link dplOperator    Operator
highlight default link dplWildcard    Special
highlight default link dplType        Type
highlight default link dplDerivative  Function
highlight default link dplFunction    Function
highlight default link dplConstructor Constant
highlight default link dplModule      Include
highlight default link dplTypeVar     Identifier
highlight default link dplSign        Operator
highlight default link dplNumber      Number
highlight default link dplFloat       Float
highlight default link dplString      String
highlight default link dplEscape      SpecialChar
highlight default link dplBrace       SpecialChar
highlight default link dplFormat      SpecialChar
highlight default link dplSpecial     Special
highlight default link dplComment     Comment
highlight default link dplSkipped     Comment
highlight default link dplDoc         SpecialComment
highlight default link dplTodo        Todo

let b:current_syntax = "dpl"
