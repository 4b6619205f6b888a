"""A compiler that doubts itself: random programs, run by every road that should lead to the same numbers.

    scopes       the types of DPL, and what is in scope where an expression is wanted
    writer       draws -> the text of an expression of a wanted type, by weighted rules
    basics scalars data arrays stencils windows found_places pairs containers zeros functions loops control derivatives
                 the rules
    programs     whole programs: declarations, definitions, a function and a point to differentiate it at
    oracle       a program's text -> what each engine makes of it, in a process that may crash, hang or fail
    agreement    outcomes -> whether engines agree, forward with reverse, and both with finite differences
    corpus       the programs of every run; `distil` chooses them

hypothesis draws, so what fails is shrunk to a program that a person can read.
"""
