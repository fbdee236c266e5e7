// The home of back_invalidate: types and constants of its protocol ROM.
//
// Generated from back-invalidate.coh by `cohkit rtl emit back-invalidate.coh --out .`, Cohkit 9.9.9; do not edit.

package back_invalidate_pkg;
  // States of a line. The first is that of lines which the directory does not hold.
  typedef enum logic [4:0] {
    I                                   = 5'd0,
    \I:MemRdShared.rd                   = 5'd1,
    \I:MemRdCur.rd                      = 5'd2,
    \I:MemWr.st                         = 5'd3,
    \I:MemRdShared.rd.clean             = 5'd4,
    \I:MemRdShared.rd.clean_invalidate  = 5'd5,
    \I>E                                = 5'd6,
    \I:MemRdCur.rd.clean                = 5'd7,
    \I:MemRdCur.rd.clean_invalidate     = 5'd8,
    \I:MemWr.st.clean                   = 5'd9,
    \I:MemWr.st.clean_invalidate        = 5'd10,
    \I>E_fS.clean                       = 5'd11,
    \I>E_fI.clean_invalidate            = 5'd12,
    \I.wr                               = 5'd13,
    \I_fSx.clean                        = 5'd14,
    \I_fS.wr.clean                      = 5'd15,
    \S.wr.clean                         = 5'd16,
    S                                   = 5'd17,
    \I_wMI|SI.clean                     = 5'd18,
    \I_fI.clean_invalidate              = 5'd19,
    \I_fI.wr.clean_invalidate           = 5'd20,
    \I.wr.clean_invalidate              = 5'd21,
    \I_wMI|SI.clean_invalidate          = 5'd22,
    \I.wr.clean                         = 5'd23,
    \I_fS.clean                         = 5'd24,
    \S_fIu.clean_invalidate             = 5'd25,
    \I+MemInv                           = 5'd26,
    I_wSI                               = 5'd27
  } state_e;

  // Events of a unit. Messages to the home come first, with their numbers in headers.
  typedef enum logic [4:0] {
    MemRdShared      = 5'd0,
    MemRdOwn         = 5'd1,
    MemInv           = 5'd2,
    MemRdCur         = 5'd3,
    MemWr            = 5'd4,
    MemWrPtl         = 5'd5,
    MemClnEvct       = 5'd6,
    MemDirtyEvct     = 5'd7,
    BIRspIDirty      = 5'd8,
    BIRspSDirty      = 5'd9,
    BIRspI           = 5'd10,
    BIRspS           = 5'd11,
    BIRspUpgrading   = 5'd12,
    BIRspMiss        = 5'd13,
    clean            = 5'd14,
    clean_invalidate = 5'd15,
    unlock           = 5'd16,
    memory_data      = 5'd17,
    memory_done      = 5'd18
  } event_e;

  // Messages to the remote, with their numbers in headers.
  typedef enum logic [2:0] {
    BISnpInv   = 3'd0,
    BISnpData  = 3'd1,
    MemDataS   = 3'd2,
    MemDataE   = 3'd3,
    CmpE       = 3'd4,
    MemDataCur = 3'd5,
    Cmp        = 3'd6
  } send_e;

  // A row of the ROM, which is addressed by state and event.
  typedef struct packed {
    home_pkg::effect_e     effect;
    home_pkg::memory_e     memory;
    logic                  acknowledge;  // of the local operation in progress, or of the unlock
    logic                  grant_valid;
    send_e                 grant;
    logic                  forward_valid;
    send_e                 forward;
    home_pkg::permission_e from;         // maximum permission of the remote, as tracked by the home
    home_pkg::permission_e to;
    state_e                next;
  } row_t;

  // Circuits to the home: 0 m2s_req, 1 m2s_rwd, 2 m2s_evict, 3 m2s_birsp; to the remote: 0 s2m_bisnp_s2m_rsp.
  localparam home_pkg::protocol_t Protocol = '{
    line_bytes:   16'd64,
    messages:     8'd14,
    locals:       8'd2,
    unlock:       8'd16,
    memory_data:  8'd17,
    memory_done:  8'd18,
    evict:        8'd15,
    rx_circuits:  8'd4,
    tx_circuits:  8'd1,
    rx_payload:   4'he,
    rx_waits:     4'h3,
    tx_payload:   4'h1,
    locking:      8'h0,
    payload:      64'h3b0,
    reads:        64'h7,
    writes:       64'h7,
    circuit:      {64'h3f00, 64'hc0, 64'h30, 64'hf},
    send_payload: 16'h2c,
    grants:       16'h78,
    forwards:     16'h3,
    send_circuit: {16'h0, 16'h0, 16'h0, 16'h7f}
  };
endpackage : back_invalidate_pkg
