// The builder of requests keeps the rules of tlp_stream.sv.
module request_builder_rules (
    input logic        rst,
    input logic        start,
    input logic [63:0] address,
    input logic [12:0] bytes,
    input logic [2:0]  state,
    input logic        write,
    input logic        four_dw,
    input logic [63:0] at,
    input logic [12:0] count,
    input logic [10:0] length,
    input logic [10:0] index,
    input logic [10:0] sent,
    input logic [10:0] all
);
    // The engine: a request has bytes, and does not cross 4 KiB.
    always_comb if (start) assume (bytes >= 13'd1 && 13'(address[11:0]) + bytes <= 13'd4096 && bytes <= 13'd4096);

    // States 0 to 5: idle, two DWs of the header, the address in one DW or two, data.
    wire [10:0] header = four_dw ? 11'd4 : 11'd3;
    always_comb if (!rst) begin
        the_state_agrees: assert (state <= 3'd5 && (state != 3'd3 || four_dw) && (state != 3'd5 || write)
            && (state == 3'd0 || count >= 13'd1 && count <= 13'd4096 && 13'(at[11:0]) + count <= 13'd4096));
        the_index_agrees: assert (state != 3'd5 ? state == 3'd0 || index == 0 : index < length);
        the_count_agrees: assert (sent == (state == 3'd5 ? header + index : state == 3'd4 ? header - 11'd1
                                           : state == 3'd0 ? '0 : 11'(state) - 11'd1));
        the_header_agrees: assert (sent == 0 || all == header + (write ? length : 11'd0));
    end
endmodule
bind request_builder tlp_stream_rules stream (
    .clk, .rst, .flr, .data(tx_data), .valid(tx_valid), .last(tx_last), .ready(tx_ready), .granted(tx_granted),
    .read_data, .read_hold, .id(requester_id), .msi_data
);
bind request_builder request_builder_rules rules (.*, .state(state), .sent(stream.sent), .all(stream.all));
