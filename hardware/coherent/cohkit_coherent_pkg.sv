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

  // Completion of the outstanding access by a message.
  localparam logic [1:0] NotDone   = 2'd0;
  localparam logic [1:0] WriteDone = 2'd2;
endpackage : cohkit_coherent_pkg
