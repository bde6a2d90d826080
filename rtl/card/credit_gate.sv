// Credits of the requests of the card: modular counters, compared as in section 2.6.1.2.
module credit_gate (
    input  logic        clk,
    input  logic        rst,
    // Limits that the receiver has advertised.
    input  logic [7:0]  posted_headers,
    input  logic [11:0] posted_data,
    input  logic [7:0]  non_posted_headers,

    // The request to be sent: a write with so many DWs, or a read.
    input  logic        is_write,
    input  logic [10:0] length,
    output logic        fits,
    // The request has been started.
    input  logic        consume,
    input  logic        consume_is_write,
    input  logic [10:0] consume_length
);
    logic [7:0]  used_posted_headers;
    logic [11:0] used_posted_data;
    logic [7:0]  used_non_posted_headers;

    wire [11:0] units         = 12'((length + 11'd3) >> 2);
    wire [11:0] consume_units = 12'((consume_length + 11'd3) >> 2);
    wire [7:0]  left_ph       = posted_headers - (used_posted_headers + 8'd1);
    wire [11:0] left_pd       = posted_data - (used_posted_data + units);
    wire [7:0]  left_nph      = non_posted_headers - (used_non_posted_headers + 8'd1);

    assign fits = is_write ? !left_ph[7] && !left_pd[11] : !left_nph[7];

    always_ff @(posedge clk) begin
        if (rst) begin
            used_posted_headers     <= '0;
            used_posted_data        <= '0;
            used_non_posted_headers <= '0;
        end else if (consume) begin
            if (consume_is_write) begin
                used_posted_headers <= used_posted_headers + 8'd1;
                used_posted_data    <= used_posted_data + consume_units;
            end else begin
                used_non_posted_headers <= used_non_posted_headers + 8'd1;
            end
        end
    end
endmodule
