// Registers of the card, and the counters of beats on its memory.
//
//   0x00 source, 0x08 destination (64 bits each), 0x10 count in bytes
//   0x14 command: bit 0 to the device, bit 1 to the host, bit 2 with an interrupt; a store starts a transfer
//   0x18 status: bit 0 running, bit 1 failed
//   0x1c completions without a request, 0x20 beats written, 0x24 beats read: a store of any value clears the three.
//   A beat is a DW of the memory, for the engine or for the BAR.
module registers (
    input  logic        clk,
    input  logic        rst,

    input  logic        write,
    input  logic [5:0]  write_address,   // in bytes, a multiple of 4
    input  logic [3:0]  write_enable,
    input  logic [31:0] write_data,
    input  logic [5:0]  read_address,
    output logic [31:0] read_data,

    output logic [63:0] source,
    output logic [63:0] destination,
    output logic [31:0] count,
    output logic        start,
    output logic [2:0]  command,

    input  logic        running,
    input  logic        failed,
    input  logic        unexpected,
    input  logic        beat_written,
    input  logic        beat_read
);
    logic [31:0] value[5];
    logic [31:0] unexpected_count;
    logic [31:0] written_count;
    logic [31:0] read_count;

    assign source      = {value[1], value[0]};
    assign destination = {value[3], value[2]};
    assign count       = value[4];

    wire [3:0] index = write_address[5:2];
    wire clear = write && index >= 4'h7 && index <= 4'h9;

    always_ff @(posedge clk) begin
        start <= 1'b0;
        if (rst) begin
            for (int i = 0; i < 5; i++) value[i] <= '0;
            command <= '0;
        end else if (write) begin
            for (int i = 0; i < 5; i++) begin
                for (int b = 0; b < 4; b++) begin
                    if (index == 4'(i) && write_enable[b]) value[i][8 * b +: 8] <= write_data[8 * b +: 8];
                end
            end
            if (index == 4'h5 && write_enable[0] && !running && !start) begin
                command <= write_data[2:0];
                start   <= write_data[0] ^ write_data[1];
            end
        end
        if (rst || clear) begin
            unexpected_count <= '0;
            written_count    <= '0;
            read_count       <= '0;
        end else begin
            unexpected_count <= unexpected_count + 32'(unexpected);
            written_count    <= written_count + 32'(beat_written);
            read_count       <= read_count + 32'(beat_read);
        end
    end

    always_comb begin
        case (read_address[5:2])
            4'h0, 4'h1, 4'h2, 4'h3, 4'h4: read_data = value[read_address[4:2]];
            4'h5: read_data = {29'b0, command};
            4'h6: read_data = {30'b0, failed, running || start};
            4'h7: read_data = unexpected_count;
            4'h8: read_data = written_count;
            4'h9: read_data = read_count;
            default: read_data = '0;
        endcase
    end

    // A transfer starts once, and never during another one.
    a_start_is_single: assert property (@(posedge clk) disable iff (rst) start |=> !start);
    a_start_when_idle: assert property (@(posedge clk) disable iff (rst) start |-> !running);
endmodule
