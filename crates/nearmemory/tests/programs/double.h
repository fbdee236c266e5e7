// What host and core tell each other by register pipes: "so many lines are yours", and "they are done".
#define PIECES 4
#define WORDS (PIECES * 16)
