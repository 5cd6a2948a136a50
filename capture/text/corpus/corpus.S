/* SPDX-FileCopyrightText: 2026 The oscar authors
   SPDX-License-Identifier: Apache-2.0

   Embeds the text files of this folder in the program, so that it does not need them at run time. */
.macro embed name, file
    .globl \name\()_begin, \name\()_end
\name\()_begin:
    .incbin "\file"
\name\()_end:
.endm

    .section .rodata
    embed oscar_calibration_text, capture/text/corpus/calibration.txt
    embed oscar_evaluation_text, capture/text/corpus/evaluation.txt
    embed oscar_haystack_text, capture/text/corpus/haystack.txt

    .section .note.GNU-stack, "", %progbits
