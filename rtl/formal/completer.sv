// The completer keeps the rules of tlp_stream.sv.
module completer_rules (
    input logic        rst,
    input logic        read_valid,
    input logic [31:0] dw1,
    input logic [10:0] length,
    input logic [2:0]  state,
    input logic [10:0] dws,
    input logic [10:0] index,
    input logic [31:0] second,
    input logic        is_abort,
    input logic [10:0] sent,
    input logic [10:0] all
);
    // The parser gives a Length of 1 to 1024. A load of one DW has no enables for a last DW (PCI Express Base
    // Specification 5.0, section 2.2.5).
    always_comb if (read_valid)
        assume (length >= 11'd1 && length <= 11'd1024 && (length != 11'd1 || dw1[7:4] == 0));

    // States 0 to 4: idle, three DWs of the header, data.
    always_comb if (!rst) begin
        the_state_agrees: assert (state <= 3'd4 && (state == 3'd0 || dws >= 11'd1 && dws <= 11'd1024
            && (dws != 11'd1 || second[7:4] == 0)));
        the_count_agrees: assert (sent == (state == 3'd4 ? 11'd3 + index : state == 3'd0 ? '0 : 11'(state) - 11'd1));
        the_index_agrees: assert (state != 3'd4 ? state == 3'd0 || index == 0 : !is_abort && index < dws);
        the_header_agrees: assert (sent == 0 || all == 11'd3 + (is_abort ? 11'd0 : dws));
    end
endmodule
bind completer tlp_stream_rules stream (
    .clk, .rst, .flr, .data(tx_data), .valid(tx_valid), .last(tx_last), .ready(tx_ready), .granted(tx_granted),
    .read_data, .read_hold, .id(completer_id), .msi_data('0)
);
bind completer completer_rules rules (.*, .state(state), .sent(stream.sent), .all(stream.all));
