// Registers of a slice, and positions of its counters.
//
// Generated from crates/rtl/src/registers.rs by its tests; hardware/registers.md describes them. Do not edit.

package registers_pkg;
  localparam int unsigned AddrWidth = 12;  // of AXI-Lite, in bytes; a register has 64 bits

  // Registers other than counters.
  localparam logic [AddrWidth-1:0] Identity        = 12'h000;
  localparam logic [AddrWidth-1:0] About           = 12'h008;
  localparam logic [AddrWidth-1:0] Shape           = 12'h010;
  localparam logic [AddrWidth-1:0] Control         = 12'h018;
  localparam logic [AddrWidth-1:0] Status          = 12'h020;
  localparam logic [AddrWidth-1:0] FirstWrong      = 12'h028;
  localparam logic [AddrWidth-1:0] FirstImpossible = 12'h030;
  localparam logic [63:0]          IdentityValue   = 64'h434f484b00000003;

  // Counters: address of the first, number of positions, and position of each.
  localparam logic [AddrWidth-1:0] Counters = 12'h400;
  localparam int unsigned          Places   = 128;

  localparam int unsigned Events           = 0;  // and 63 more
  localparam int unsigned Sent             = 64;  // and 15 more
  localparam int unsigned RxWaitsUnit      = 80;  // and 3 more
  localparam int unsigned RxWaitsSlot      = 84;  // and 3 more
  localparam int unsigned TxWaits          = 88;  // and 3 more
  localparam int unsigned ArWaits          = 92;
  localparam int unsigned AwWaits          = 93;
  localparam int unsigned WWaits           = 94;
  localparam int unsigned LocalWaits       = 95;
  localparam int unsigned UnlockWaits      = 96;
  localparam int unsigned AnswerWaits      = 97;
  localparam int unsigned StallsLine       = 98;
  localparam int unsigned StallsRoom       = 99;
  localparam int unsigned StallsRead       = 100;
  localparam int unsigned StallsWrite      = 101;
  localparam int unsigned StallsLocal      = 102;
  localparam int unsigned StallsSend       = 103;
  localparam int unsigned Evictions        = 104;
  localparam int unsigned ChangesLost      = 105;
  localparam int unsigned Busy             = 106;
  localparam int unsigned Refused          = 107;
  localparam int unsigned Changes          = 108;
  localparam int unsigned Cycles           = 109;
  localparam int unsigned WrongMessages    = 110;  // and 3 more
  localparam int unsigned WrongLines       = 114;  // and 3 more
  localparam int unsigned WrongOperations  = 118;
  localparam int unsigned WrongDeviceLines = 119;
  localparam int unsigned Impossible       = 120;
  localparam int unsigned WrongLengths     = 121;  // and 3 more
  localparam int unsigned WrongReads       = 125;
  localparam int unsigned WrongBursts      = 126;
  localparam int unsigned WrongWrites      = 127;
endpackage : registers_pkg
