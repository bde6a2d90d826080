// Beats of several DWs to a DW per clock. A TLP may begin in the beat in which another ends.
module beats_to_dws #(
    parameter int DWS = 2
) (
    input  logic                 clk,
    input  logic                 rst,

    input  logic [DWS-1:0][31:0] beat,
    input  logic [DWS-1:0]       beat_has,    // DWs that are part of a TLP
    input  logic [DWS-1:0]       beat_starts, // the first DW of a TLP
    input  logic [DWS-1:0]       beat_ends,   // the last DW of a TLP
    input  logic [2:0]           beat_bar,    // BAR of the TLP that starts
    input  logic                 beat_valid,
    output logic                 beat_ready,

    output logic [31:0]          data,
    output logic                 valid,
    output logic                 last,
    output logic [2:0]           bar,
    input  logic                 ready
);
    logic [DWS-1:0][31:0] dws;
    logic [DWS-1:0]       left, starts, ends;
    logic [2:0]           starting_bar, bar_before;
    logic [$clog2(DWS)-1:0] place;

    always_comb begin
        place = '0;
        for (int at = DWS - 1; at >= 0; at--) if (left[at]) place = ($clog2(DWS))'(at);
    end
    assign valid = left != 0;
    assign data  = dws[place];
    assign last  = ends[place];
    assign bar   = starts[place] ? starting_bar : bar_before;
    wire [DWS-1:0] rest = left & (left - 1'b1);
    assign beat_ready = left == 0 || (ready && rest == 0);

    always_ff @(posedge clk) begin
        if (rst) begin
            left <= '0;
        end else begin
            if (valid && ready) begin
                left       <= rest;
                bar_before <= bar;
            end
            if (beat_valid && beat_ready) begin
                dws          <= beat;
                left         <= beat_has;
                starts       <= beat_starts;
                ends         <= beat_ends;
                starting_bar <= beat_bar;
            end
        end
    end
endmodule
