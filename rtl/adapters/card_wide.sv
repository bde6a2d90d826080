// The card with a plain stream of TLPs of 64 to 512 bits.
module card_wide #(
    parameter int  WIDTH = 128,
    localparam int DWS = WIDTH / 32
) (
    input  logic             clk,
    input  logic             rst,
    input  logic             flr,

    input  logic [WIDTH-1:0] rx_data,
    input  logic [DWS-1:0]   rx_keep,
    input  logic             rx_valid,
    input  logic             rx_last,
    input  logic [2:0]       rx_bar,
    output logic             rx_ready,

    output logic [WIDTH-1:0] tx_data,
    output logic [DWS-1:0]   tx_keep,
    output logic             tx_valid,
    output logic             tx_last,
    input  logic             tx_ready,

    input  logic [7:0]       credit_posted_headers,
    input  logic [11:0]      credit_posted_data,
    input  logic [7:0]       credit_non_posted_headers,

    input  logic [15:0]      requester_id,
    input  logic [12:0]      mps,
    input  logic [12:0]      mrrs,
    input  logic [10:0]      tags,
    input  logic             bus_master,
    input  logic [31:0]      timeout_clocks,
    input  logic             msi_enable,
    input  logic [63:0]      msi_address,
    input  logic [31:0]      msi_data
);
    logic begins;
    always_ff @(posedge clk) begin
        if (rst) begins <= 1'b1;
        else if (rx_valid && rx_ready) begins <= rx_last;
    end
    // The last DW is the one whose next is not kept.
    wire [DWS-1:0] ends = rx_last ? rx_keep & ~(rx_keep >> 1) : '0;

    logic [31:0] card_rx_data, card_tx_data;
    logic        card_rx_valid, card_rx_last, card_rx_ready, card_tx_valid, card_tx_last, card_tx_ready;
    logic [2:0]  card_rx_bar;
    beats_to_dws #(.DWS(DWS)) u_rx (
        .clk, .rst, .beat(rx_data), .beat_has(rx_keep), .beat_starts(DWS'(begins)), .beat_ends(ends), .beat_bar(rx_bar),
        .beat_valid(rx_valid), .beat_ready(rx_ready), .data(card_rx_data), .valid(card_rx_valid), .last(card_rx_last),
        .bar(card_rx_bar), .ready(card_rx_ready)
    );
    card u_card (
        .clk, .rst, .flr, .rx_data(card_rx_data), .rx_valid(card_rx_valid), .rx_last(card_rx_last), .rx_bar(card_rx_bar),
        .rx_ready(card_rx_ready), .tx_data(card_tx_data), .tx_valid(card_tx_valid), .tx_last(card_tx_last),
        .tx_ready(card_tx_ready), .credit_posted_headers, .credit_posted_data, .credit_non_posted_headers, .requester_id, .mps,
        .mrrs, .tags, .bus_master,
        // Completions wait here, since the card takes a DW per clock. With 32768 clocks the timer is 1152 longer: enough for
        // eight completions of 512 B, and less than the delay of a late completion.
        .timeout_clocks(timeout_clocks + (timeout_clocks >> 5) + 32'd128), .msi_enable, .msi_address, .msi_data
    );
    dws_to_beats #(.DWS(DWS)) u_tx (
        .clk, .rst, .data(card_tx_data), .valid(card_tx_valid), .last(card_tx_last), .ready(card_tx_ready), .beat(tx_data),
        .beat_has(tx_keep), .beat_last(tx_last), .beat_valid(tx_valid), .beat_ready(tx_ready)
    );
endmodule
