// The card with the user interface of the UltraScale+ hard block: streams of 64 to 512 bits, aligned to DWs, without
// straddling, and tags of the user.
module card_ultrascale #(
    parameter int          WIDTH = 128,
    // Longer than the completion timeout of the block and the time for which it holds reads back.
    parameter logic [31:0] TIMEOUT_CLOCKS = 32'd8192,
    // Streams of 512 bits have a longer tuser, with its fields at other places.
    localparam bit         IS_WIDE = WIDTH == 512,
    localparam int         CQ_USER = IS_WIDE ? 183 : 88,
    localparam int         CC_USER = IS_WIDE ? 81 : 33,
    localparam int         RQ_USER = IS_WIDE ? 137 : 62,
    localparam int         RC_USER = IS_WIDE ? 161 : 75
) (
    input  logic                user_clk,
    input  logic                user_reset,

    input  logic [WIDTH-1:0]    m_axis_cq_tdata,
    input  logic [WIDTH/32-1:0] m_axis_cq_tkeep,
    input  logic                m_axis_cq_tlast,
    input  logic [CQ_USER-1:0]  m_axis_cq_tuser,
    input  logic                m_axis_cq_tvalid,
    output logic                m_axis_cq_tready,

    output logic [WIDTH-1:0]    s_axis_cc_tdata,
    output logic [WIDTH/32-1:0] s_axis_cc_tkeep,
    output logic                s_axis_cc_tlast,
    output logic [CC_USER-1:0]  s_axis_cc_tuser,
    output logic                s_axis_cc_tvalid,
    input  logic                s_axis_cc_tready,

    output logic [WIDTH-1:0]    s_axis_rq_tdata,
    output logic [WIDTH/32-1:0] s_axis_rq_tkeep,
    output logic                s_axis_rq_tlast,
    output logic [RQ_USER-1:0]  s_axis_rq_tuser,
    output logic                s_axis_rq_tvalid,
    input  logic                s_axis_rq_tready,

    input  logic [WIDTH-1:0]    m_axis_rc_tdata,
    input  logic [WIDTH/32-1:0] m_axis_rc_tkeep,
    input  logic                m_axis_rc_tlast,
    input  logic [RC_USER-1:0]  m_axis_rc_tuser,
    input  logic                m_axis_rc_tvalid,
    output logic                m_axis_rc_tready,

    input  logic [1:0]          cfg_max_payload,
    input  logic [2:0]          cfg_max_read_req,
    input  logic [15:0]         cfg_function_status,
    input  logic [3:0]          cfg_flr_in_process,
    output logic [3:0]          cfg_flr_done,

    input  logic [5:0]          pcie_rq_seq_num0,
    input  logic                pcie_rq_seq_num_vld0,

    input  logic [3:0]          cfg_interrupt_msi_enable,
    output logic [31:0]         cfg_interrupt_msi_int,
    input  logic                cfg_interrupt_msi_sent,
    input  logic                cfg_interrupt_msi_fail
);
    // Requester and completer IDs are those of the block: its bus and device number are unknown here. The card compares the
    // Requester ID of completions, so the block must have this one.
    parameter logic [15:0] ID = 16'h0100;
    localparam logic [63:0] MSI_ADDRESS = 64'hFEE0_0000;

    wire flr = cfg_flr_in_process[0];
    assign cfg_flr_done = {3'b000, flr};

    logic [31:0] cq_data, rc_data;
    logic        cq_valid, cq_last, cq_ready, rc_valid, rc_last, rc_ready;
    logic [2:0]  cq_bar, rc_bar;
    packet_to_tlp #(.WIDTH(WIDTH), .IS_CQ(1'b1)) u_cq (
        .clk(user_clk), .rst(user_reset), .tdata(m_axis_cq_tdata), .tkeep(m_axis_cq_tkeep), .tlast(m_axis_cq_tlast),
        .byte_enables({m_axis_cq_tuser[IS_WIDE ? 8 : 4 +: 4], m_axis_cq_tuser[3:0]}), .tvalid(m_axis_cq_tvalid), .tready(m_axis_cq_tready), .data(cq_data),
        .valid(cq_valid), .last(cq_last), .bar(cq_bar), .ready(cq_ready)
    );
    packet_to_tlp #(.WIDTH(WIDTH), .IS_CQ(1'b0)) u_rc (
        .clk(user_clk), .rst(user_reset), .tdata(m_axis_rc_tdata), .tkeep(m_axis_rc_tkeep), .tlast(m_axis_rc_tlast),
        .byte_enables(8'd0), .tvalid(m_axis_rc_tvalid), .tready(m_axis_rc_tready), .data(rc_data), .valid(rc_valid),
        .last(rc_last), .bar(rc_bar), .ready(rc_ready)
    );

    // Whole TLPs of one of them; completions first.
    logic in_tlp, from_rc;
    wire is_rc = in_tlp ? from_rc : rc_valid;
    wire [31:0] rx_data  = is_rc ? rc_data : cq_data;
    wire        rx_valid = is_rc ? rc_valid : cq_valid;
    wire        rx_last  = is_rc ? rc_last : cq_last;
    logic       rx_ready;
    assign rc_ready = rx_ready && is_rc;
    assign cq_ready = rx_ready && !is_rc;
    always_ff @(posedge user_clk) begin
        if (user_reset) begin
            in_tlp <= 1'b0;
        end else if (rx_valid) begin
            in_tlp  <= !(rx_ready && rx_last);
            from_rc <= is_rc;
        end
    end

    logic [31:0] tx_data;
    logic        tx_valid, tx_last, tx_ready;
    logic [7:0]  credit_posted_headers, credit_non_posted_headers;
    logic [11:0] credit_posted_data;
    endless_credits u_credits (
        .clk(user_clk), .rst(user_reset), .tx_data, .tx_valid, .tx_last, .tx_ready, .posted_headers(credit_posted_headers),
        .posted_data(credit_posted_data), .non_posted_headers(credit_non_posted_headers)
    );
    card u_card (
        .clk(user_clk), .rst(user_reset), .flr, .rx_data, .rx_valid, .rx_last, .rx_bar(is_rc ? rc_bar : cq_bar), .rx_ready,
        .tx_data, .tx_valid, .tx_last, .tx_ready,
        .credit_posted_headers, .credit_posted_data, .credit_non_posted_headers,
        .requester_id(ID), .mps(13'd128 << cfg_max_payload), .mrrs(13'd128 << cfg_max_read_req), .tags(11'd256),
        .bus_master(cfg_function_status[2]), .timeout_clocks(TIMEOUT_CLOCKS),
        .msi_enable(cfg_interrupt_msi_enable[0]), .msi_address(MSI_ADDRESS), .msi_data(32'd0)
    );
    logic [WIDTH-1:0]    tdata;
    logic [WIDTH/32-1:0] tkeep;
    logic                tlast, msi;
    logic [7:0]          byte_enables;
    logic                is_write;
    // Writes that the block has not sent. Their sequence number has a 1 and the number of function-level resets; that of
    // reads is 0.
    logic [10:0]         unsent;
    logic [2:0]          resets;
    wire write_enters = s_axis_rq_tvalid && s_axis_rq_tready && tlast && is_write;
    wire write_leaves = pcie_rq_seq_num_vld0 && pcie_rq_seq_num0 == {2'b00, resets, 1'b1};
    always_ff @(posedge user_clk) begin
        if (user_reset) resets <= '0;
        else if (flr) resets <= resets + 3'd1;
        if (user_reset || flr) unsent <= '0;
        else unsent <= unsent + 11'(write_enters) - 11'(write_leaves);
    end
    tlp_to_packet #(.WIDTH(WIDTH), .MSI_ADDRESS(MSI_ADDRESS)) u_tx (
        .clk(user_clk), .rst(user_reset), .flr, .data(tx_data), .valid(tx_valid), .last(tx_last), .ready(tx_ready), .tdata,
        .tkeep, .tlast, .byte_enables, .rq_valid(s_axis_rq_tvalid), .rq_ready(s_axis_rq_tready),
        .cc_valid(s_axis_cc_tvalid), .cc_ready(s_axis_cc_tready), .is_write, .writes_sent(unsent == 0), .msi,
        .msi_over(cfg_interrupt_msi_sent || cfg_interrupt_msi_fail)
    );
    assign {s_axis_rq_tdata, s_axis_rq_tkeep, s_axis_rq_tlast} = {tdata, tkeep, tlast};
    assign {s_axis_cc_tdata, s_axis_cc_tkeep, s_axis_cc_tlast} = {tdata, tkeep, tlast};
    logic                first;   // beat of a packet
    logic [3:0]          last_dw;
    always_ff @(posedge user_clk) begin
        if (user_reset) first <= 1'b1;
        else if (s_axis_rq_tvalid && s_axis_rq_tready || s_axis_cc_tvalid && s_axis_cc_tready) first <= tlast;
    end
    assign last_dw = 4'($countones(tkeep) - 1);
    always_comb begin
        {s_axis_rq_tuser, s_axis_cc_tuser} = '0;
        s_axis_rq_tuser[3:0] = byte_enables[3:0];
        s_axis_rq_tuser[IS_WIDE ? 8 : 4 +: 4]  = byte_enables[7:4];
        s_axis_rq_tuser[IS_WIDE ? 61 : 24 +: 4] = is_write ? {resets, 1'b1} : 4'd0;
        if (IS_WIDE) begin
            // is_sop, is_eop and the place of the last DW.
            {s_axis_rq_tuser[20], s_axis_rq_tuser[26], s_axis_rq_tuser[31:28]} = {first, tlast, last_dw};
            {s_axis_cc_tuser[0], s_axis_cc_tuser[6], s_axis_cc_tuser[11:8]}    = {first, tlast, last_dw};
        end
    end
    assign cfg_interrupt_msi_int = {31'd0, msi};
endmodule
