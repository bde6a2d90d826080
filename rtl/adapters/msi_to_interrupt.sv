// Converts the MSI, a write of a DW to MSI_ADDRESS in a stream of TLPs, to an interrupt request of a block.
module msi_to_interrupt #(
    parameter logic [31:0] MSI_ADDRESS = 32'hFEE0_0000
) (
    input  logic        clk,
    input  logic        rst,

    input  logic [31:0] in_data,
    input  logic        in_valid,
    input  logic        in_last,
    output logic        in_ready,

    output logic [31:0] out_data,
    output logic        out_valid,
    output logic        out_last,
    input  logic        out_ready,

    output logic        interrupt,
    input  logic        interrupt_taken
);
    typedef enum logic [1:0] {HEADER, REPLAY, REST, INTERRUPT} state_t;
    state_t           state;
    logic [2:0][31:0] header;
    logic [1:0]       count;
    logic             ends;

    // A write with a header of 3 DWs.
    wire is_msi = header[0][31:24] == 8'h40 && in_data == MSI_ADDRESS;

    assign in_ready  = state == HEADER || (state == REST && out_ready);
    assign out_valid = state == REPLAY || (state == REST && in_valid);
    assign out_data  = state == REPLAY ? header[count] : in_data;
    assign out_last  = state == REPLAY ? ends && count == 2'd2 : in_last;
    assign interrupt = state == INTERRUPT;

    always_ff @(posedge clk) begin
        if (rst) begin
            state <= HEADER;
            count <= '0;
        end else begin
            case (state)
                HEADER: if (in_valid) begin
                    if (count == 2'd3) begin
                        // The data of the MSI.
                        state <= INTERRUPT;
                        count <= '0;
                    end else begin
                        header[count] <= in_data;
                        count         <= count + 2'd1;
                        ends          <= in_last;
                        if (count == 2'd2 && !is_msi) begin
                            state <= REPLAY;
                            count <= '0;
                        end
                    end
                end
                REPLAY: if (out_ready) begin
                    count <= count == 2'd2 ? 2'd0 : count + 2'd1;
                    if (count == 2'd2) state <= ends ? HEADER : REST;
                end
                REST: if (in_valid && out_ready && in_last) state <= HEADER;
                INTERRUPT: if (interrupt_taken) state <= HEADER;
            endcase
        end
    end
endmodule
