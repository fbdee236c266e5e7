// Parameters shared by host and core, which hand over lines and report completion by register pipes.
#define PIECES 4
#define WORDS (PIECES * 16)
