// The card with the streams of a PHY of LitePCIe, of 64 to 512 bits.
module card_litepcie #(
    parameter int          WIDTH = 64,
    parameter logic [31:0] TIMEOUT_CLOCKS = 32'd10240,
    localparam int         DWS = WIDTH / 32
) (
    input  logic               clk,
    input  logic               rst,

    input  logic [WIDTH-1:0]   phy_source_dat,
    input  logic [WIDTH/8-1:0] phy_source_be,
    input  logic               phy_source_first,
    input  logic               phy_source_last,
    input  logic               phy_source_valid,
    output logic               phy_source_ready,

    output logic [WIDTH-1:0]   phy_sink_dat,
    output logic [WIDTH/8-1:0] phy_sink_be,
    output logic               phy_sink_last,
    output logic               phy_sink_valid,
    input  logic               phy_sink_ready,

    output logic               phy_msi_valid,
    output logic [7:0]         phy_msi_dat,
    input  logic               phy_msi_ready,

    input  logic [15:0]        phy_id,
    input  logic               phy_bus_master_enable,
    input  logic [12:0]        phy_max_payload_size,
    input  logic [12:0]        phy_max_request_size
);
    localparam logic [31:0] MSI_ADDRESS = 32'hFEE0_0000;

    logic [DWS-1:0] has, ends;
    always_comb begin
        for (int at = 0; at < DWS; at++) begin
            has[at]  = phy_source_be[4 * at];
            ends[at] = phy_source_last && has[at] && (at + 1 == DWS || !phy_source_be[(4 * at + 4) % (WIDTH / 8)]);
        end
    end

    logic [31:0] rx_data, tx_data, msi_data;
    logic        rx_valid, rx_last, rx_ready, tx_valid, tx_last, tx_ready, msi_valid, msi_last, msi_ready;
    logic [2:0]  rx_bar;
    // The PHY does not say which BAR an address matches: the card has one.
    beats_to_dws #(.DWS(DWS)) u_rx (
        .clk, .rst, .beat(phy_source_dat), .beat_has(has), .beat_starts(DWS'(phy_source_first)), .beat_ends(ends),
        .beat_bar(3'd0), .beat_valid(phy_source_valid), .beat_ready(phy_source_ready), .data(rx_data), .valid(rx_valid),
        .last(rx_last), .bar(rx_bar), .ready(rx_ready)
    );

    logic [7:0]  credit_posted_headers, credit_non_posted_headers;
    logic [11:0] credit_posted_data;
    endless_credits u_credits (
        .clk, .rst, .tx_data, .tx_valid, .tx_last, .tx_ready, .posted_headers(credit_posted_headers),
        .posted_data(credit_posted_data), .non_posted_headers(credit_non_posted_headers)
    );
    card u_card (
        .clk, .rst, .flr(1'b0), .rx_data, .rx_valid, .rx_last, .rx_bar, .rx_ready, .tx_data, .tx_valid, .tx_last, .tx_ready,
        .credit_posted_headers, .credit_posted_data, .credit_non_posted_headers, .requester_id(phy_id),
        .mps(phy_max_payload_size), .mrrs(phy_max_request_size), .tags(11'd32), .bus_master(phy_bus_master_enable),
        .timeout_clocks(TIMEOUT_CLOCKS), .msi_enable(1'b1), .msi_address({32'd0, MSI_ADDRESS}), .msi_data(32'd0)
    );
    msi_to_interrupt #(.MSI_ADDRESS(MSI_ADDRESS)) u_msi (
        .clk, .rst, .in_data(tx_data), .in_valid(tx_valid), .in_last(tx_last), .in_ready(tx_ready), .out_data(msi_data),
        .out_valid(msi_valid), .out_last(msi_last), .out_ready(msi_ready), .interrupt(phy_msi_valid),
        .interrupt_taken(phy_msi_ready)
    );
    assign phy_msi_dat = 8'd0;
    logic [DWS-1:0] keep;
    dws_to_beats #(.DWS(DWS)) u_tx (
        .clk, .rst, .data(msi_data), .valid(msi_valid), .last(msi_last), .ready(msi_ready), .beat(phy_sink_dat),
        .beat_has(keep), .beat_last(phy_sink_last), .beat_valid(phy_sink_valid), .beat_ready(phy_sink_ready)
    );
    always_comb for (int at = 0; at < DWS; at++) phy_sink_be[4 * at +: 4] = {4{keep[at]}};
endmodule
