// Memory with two ports of four bytes each, at any byte address: four banks of single bytes.
//
// The data of a read come one clock later, and stay while `hold` is set, whatever is written meanwhile.
module sram #(
    parameter int BITS = 13   // width of a byte address
) (
    input  logic            clk,
    input  logic [BITS-1:0] a_address,
    input  logic [3:0]      a_write,
    input  logic [31:0]     a_data,
    input  logic            a_hold,
    output logic [31:0]     a_read,
    input  logic [BITS-1:0] b_address,
    input  logic [3:0]      b_write,
    input  logic [31:0]     b_data,
    input  logic            b_hold,
    output logic [31:0]     b_read
);
    localparam int ROWS = 1 << (BITS - 2);

    logic [3:0][7:0] a_bank;
    logic [3:0][7:0] b_bank;
    logic [1:0] a_low;
    logic [1:0] b_low;

    always_ff @(posedge clk) begin
        if (!a_hold) a_low <= a_address[1:0];
        if (!b_hold) b_low <= b_address[1:0];
    end

    for (genvar bank = 0; bank < 4; bank++) begin : g_bank
        logic [7:0] memory[ROWS];
        wire [1:0] a_lane = 2'(bank) - a_address[1:0];
        wire [1:0] b_lane = 2'(bank) - b_address[1:0];
        wire [BITS-1:0] a_byte = a_address + BITS'(a_lane);
        wire [BITS-1:0] b_byte = b_address + BITS'(b_lane);

        always_ff @(posedge clk) begin
            if (a_write[a_lane]) memory[a_byte[BITS-1:2]] <= a_data[8 * a_lane +: 8];
            if (b_write[b_lane]) memory[b_byte[BITS-1:2]] <= b_data[8 * b_lane +: 8];
            if (!a_hold) a_bank[bank] <= memory[a_byte[BITS-1:2]];
            if (!b_hold) b_bank[bank] <= memory[b_byte[BITS-1:2]];
        end
    end

    for (genvar lane = 0; lane < 4; lane++) begin : g_lane
        wire [1:0] a_from = a_low + 2'(lane);
        wire [1:0] b_from = b_low + 2'(lane);
        assign a_read[8 * lane +: 8] = a_bank[a_from];
        assign b_read[8 * lane +: 8] = b_bank[b_from];
    end
endmodule
