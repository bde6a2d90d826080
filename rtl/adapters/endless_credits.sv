// Credit limits that advance with each TLP sent, so that the card never waits: the hard block counts the credits of the link.
module endless_credits (
    input  logic        clk,
    input  logic        rst,

    input  logic [31:0] tx_data,
    input  logic        tx_valid,
    input  logic        tx_last,
    input  logic        tx_ready,

    output logic [7:0]  posted_headers,
    output logic [11:0] posted_data,
    output logic [7:0]  non_posted_headers
);
    logic [7:0]  posted, reads;
    logic [11:0] data;
    logic        begins;
    wire is_request = tx_data[28:24] == 5'b00000;
    wire [10:0] tx_length = tx_data[9:0] == 0 ? 11'd1024 : {1'b0, tx_data[9:0]};

    assign posted_headers     = posted + 8'd64;
    assign posted_data        = data + 12'd1024;
    assign non_posted_headers = reads + 8'd64;

    always_ff @(posedge clk) begin
        if (rst) begin
            {posted, reads, data} <= '0;
            begins <= 1'b1;
        end else if (tx_valid && tx_ready) begin
            begins <= tx_last;
            if (begins && is_request && tx_data[30]) begin
                posted <= posted + 8'd1;
                data   <= data + 12'((tx_length + 11'd3) >> 2);
            end else if (begins && is_request) begin
                reads <= reads + 8'd1;
            end
        end
    end
endmodule
