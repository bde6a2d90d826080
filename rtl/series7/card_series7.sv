// The card with the user interface of the 7-series hard block: streams of 64 or 128 bits.
module card_series7 #(
    parameter int          WIDTH = 64,
    parameter logic [31:0] TIMEOUT_CLOCKS = 32'd10240,
    localparam int         DWS = WIDTH / 32
) (
    input  logic               user_clk,
    input  logic               user_reset,

    input  logic [WIDTH-1:0]   m_axis_rx_tdata,
    input  logic [WIDTH/8-1:0] m_axis_rx_tkeep,
    input  logic               m_axis_rx_tlast,
    input  logic [21:0]        m_axis_rx_tuser,
    input  logic               m_axis_rx_tvalid,
    output logic               m_axis_rx_tready,
    output logic               rx_np_ok,

    output logic [WIDTH-1:0]   s_axis_tx_tdata,
    output logic [WIDTH/8-1:0] s_axis_tx_tkeep,
    output logic               s_axis_tx_tlast,
    output logic [3:0]         s_axis_tx_tuser,
    output logic               s_axis_tx_tvalid,
    input  logic               s_axis_tx_tready,

    input  logic [7:0]         cfg_bus_number,
    input  logic [4:0]         cfg_device_number,
    input  logic [2:0]         cfg_function_number,
    input  logic [15:0]        cfg_command,
    input  logic [15:0]        cfg_dcommand,

    output logic               cfg_interrupt,
    input  logic               cfg_interrupt_rdy,
    input  logic               cfg_interrupt_msienable
);
    localparam logic [31:0] MSI_ADDRESS = 32'hFEE0_0000;

    // Which DWs of a beat are part of a TLP, and where one starts and ends: 128 bits have that in tuser.
    logic [DWS-1:0] has, starts, ends;
    generate
        if (WIDTH == 128) begin : g_wide
            wire is_start = m_axis_rx_tuser[14], is_end = m_axis_rx_tuser[21];
            wire [1:0] start = m_axis_rx_tuser[13:12], last = m_axis_rx_tuser[20:19];
            always_comb begin
                for (int at = 0; at < DWS; at++) begin
                    starts[at] = is_start && start == 2'(at);
                    ends[at]   = is_end && last == 2'(at);
                    // A TLP may start behind the end of another.
                    has[at]    = !is_end || 2'(at) <= last || (is_start && start > last && 2'(at) >= start);
                end
            end
        end else begin : g_narrow
            logic begins;
            always_ff @(posedge user_clk) begin
                if (user_reset) begins <= 1'b1;
                else if (m_axis_rx_tvalid && m_axis_rx_tready) begins <= m_axis_rx_tlast;
            end
            assign has    = {m_axis_rx_tkeep[4], 1'b1};
            assign starts = {1'b0, begins};
            assign ends   = {m_axis_rx_tlast && has[1], m_axis_rx_tlast && !has[1]};
        end
    endgenerate
    logic [2:0] bar;
    always_comb begin
        bar = 3'd0;
        for (int at = 0; at < 6; at++) if (m_axis_rx_tuser[2 + at]) bar = 3'(at);
    end

    logic [31:0] rx_data, tx_data, msi_data;
    logic        rx_valid, rx_last, rx_ready, tx_valid, tx_last, tx_ready, msi_valid, msi_last, msi_ready;
    logic [2:0]  rx_bar;
    beats_to_dws #(.DWS(DWS)) u_rx (
        .clk(user_clk), .rst(user_reset), .beat(m_axis_rx_tdata), .beat_has(has), .beat_starts(starts), .beat_ends(ends),
        .beat_bar(bar), .beat_valid(m_axis_rx_tvalid), .beat_ready(m_axis_rx_tready), .data(rx_data), .valid(rx_valid),
        .last(rx_last), .bar(rx_bar), .ready(rx_ready)
    );
    assign rx_np_ok = 1'b1;

    logic [7:0]  credit_posted_headers, credit_non_posted_headers;
    logic [11:0] credit_posted_data;
    endless_credits u_credits (
        .clk(user_clk), .rst(user_reset), .tx_data, .tx_valid, .tx_last, .tx_ready, .posted_headers(credit_posted_headers),
        .posted_data(credit_posted_data), .non_posted_headers(credit_non_posted_headers)
    );
    card u_card (
        .clk(user_clk), .rst(user_reset), .flr(1'b0), .rx_data, .rx_valid, .rx_last, .rx_bar, .rx_ready, .tx_data, .tx_valid,
        .tx_last, .tx_ready, .credit_posted_headers, .credit_posted_data, .credit_non_posted_headers,
        .requester_id({cfg_bus_number, cfg_device_number, cfg_function_number}), .mps(13'd128 << cfg_dcommand[7:5]),
        .mrrs(13'd128 << cfg_dcommand[14:12]), .tags(cfg_dcommand[8] ? 11'd256 : 11'd32), .bus_master(cfg_command[2]),
        .timeout_clocks(TIMEOUT_CLOCKS), .msi_enable(cfg_interrupt_msienable), .msi_address({32'd0, MSI_ADDRESS}),
        .msi_data(32'd0)
    );
    msi_to_interrupt #(.MSI_ADDRESS(MSI_ADDRESS)) u_msi (
        .clk(user_clk), .rst(user_reset), .in_data(tx_data), .in_valid(tx_valid), .in_last(tx_last), .in_ready(tx_ready),
        .out_data(msi_data), .out_valid(msi_valid), .out_last(msi_last), .out_ready(msi_ready), .interrupt(cfg_interrupt),
        .interrupt_taken(cfg_interrupt_rdy)
    );
    logic [DWS-1:0] keep;
    dws_to_beats #(.DWS(DWS)) u_tx (
        .clk(user_clk), .rst(user_reset), .data(msi_data), .valid(msi_valid), .last(msi_last), .ready(msi_ready),
        .beat(s_axis_tx_tdata), .beat_has(keep), .beat_last(s_axis_tx_tlast), .beat_valid(s_axis_tx_tvalid),
        .beat_ready(s_axis_tx_tready)
    );
    always_comb for (int at = 0; at < DWS; at++) s_axis_tx_tkeep[4 * at +: 4] = {4{keep[at]}};
    assign s_axis_tx_tuser = '0;
endmodule
