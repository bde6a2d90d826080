// A DW per clock to beats of several DWs; each TLP starts at the first DW of a beat.
module dws_to_beats #(
    parameter int DWS = 2
) (
    input  logic                 clk,
    input  logic                 rst,

    input  logic [31:0]          data,
    input  logic                 valid,
    input  logic                 last,
    output logic                 ready,

    output logic [DWS-1:0][31:0] beat,
    output logic [DWS-1:0]       beat_has,
    output logic                 beat_last,
    output logic                 beat_valid,
    input  logic                 beat_ready
);
    localparam int BITS = $clog2(DWS);
    logic [BITS-1:0] place;

    assign ready = !beat_valid || beat_ready;

    always_ff @(posedge clk) begin
        if (rst) begin
            place      <= '0;
            beat_has   <= '0;
            beat_valid <= 1'b0;
        end else begin
            if (beat_valid && beat_ready) begin
                beat_valid <= 1'b0;
                beat_has   <= '0;
            end
            if (valid && ready) begin
                beat[place]     <= data;
                beat_has[place] <= 1'b1;
                beat_last       <= last;
                beat_valid      <= last || place == BITS'(DWS - 1);
                place           <= last ? '0 : place + 1'b1;
            end
        end
    end
endmodule
