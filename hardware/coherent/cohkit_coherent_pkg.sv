// Constants that all printed packages of agents share: the numbers of their effects and sources of data.

package cohkit_coherent_pkg;
  // Effect of a step function on its event.
  localparam logic [1:0] NoRow = 2'd0;
  localparam logic [1:0] Take  = 2'd1;
  localparam logic [1:0] Stall = 2'd2;

  // Source of the data of a message, and copy of the line after a step; 0 is none.
  localparam logic [1:0] Own      = 2'd1;
  localparam logic [1:0] Received = 2'd2;
  localparam logic [1:0] Store    = 2'd3;

  // Operation of an access at a processor port; 0 is a load or a store. The atomic operations answer with the former bytes.
  localparam logic [2:0] Swap           = 3'd1;
  localparam logic [2:0] Add            = 3'd2;
  localparam logic [2:0] CompareAndSwap = 3'd3;
  localparam logic [2:0] Fence          = 3'd4;  // after all earlier accesses of the port, before all later ones
  localparam logic [2:0] Flush          = 3'd5;  // eviction of the line

  // Completion of the outstanding access by a message.
  localparam logic [1:0] NotDone   = 2'd0;
  localparam logic [1:0] WriteDone = 2'd2;
endpackage : cohkit_coherent_pkg
