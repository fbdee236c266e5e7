// Ports between home, application and memory: one struct per direction. Field names are
// those of AXI; addresses are in bytes.

package device_side_pkg;
  // Outputs of an AXI manager; `ar_lines` is the length of a burst, in lines, minus one.
  typedef struct packed {
    logic         aw_valid;
    logic [7:0]   aw_id;
    logic [35:0]  aw_addr;
    logic         w_valid;
    logic [511:0] w_data;
    logic [63:0]  w_strb;
    logic         w_last;
    logic         b_ready;
    logic         ar_valid;
    logic [7:0]   ar_id;
    logic [35:0]  ar_addr;
    logic [7:0]   ar_lines;
    logic         r_ready;
  } axi_manager_t;

  // Outputs of an AXI subordinate.
  typedef struct packed {
    logic         aw_ready;
    logic         w_ready;
    logic         b_valid;
    logic [7:0]   b_id;
    logic         ar_ready;
    logic         r_valid;
    logic [7:0]   r_id;
    logic [511:0] r_data;
    logic         r_last;
  } axi_subordinate_t;

  // Outputs of a slice of the home to the device side.
  typedef struct packed {
    axi_manager_t          axi;
    logic                 local_req_ready;
    logic                 unlock_ready;
    logic                 local_rsp_valid;
    home_pkg::local_rsp_t local_rsp;
  } from_home_t;

  // Inputs of a slice of the home from the device side.
  typedef struct packed {
    axi_subordinate_t                     axi;
    logic                           local_req_valid;
    home_pkg::local_req_t           local_req;
    logic                           unlock_valid;
    logic [home_pkg::LineWidth-1:0] unlock_line;
    logic                           local_rsp_ready;
  } to_home_t;
endpackage : device_side_pkg
