// Parameters of forgets-host.c and forgets.c: number of lines of far memory, and of their words.
#define PIECES 4
#define WORDS (PIECES * 16)
