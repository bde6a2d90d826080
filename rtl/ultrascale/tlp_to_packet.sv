// TLPs of the card to packets of RQ and CC. A TLP is collected whole first: a packet must not pause.
//
// A write of one DW to `MSI_ADDRESS` is no packet, but a request for the MSI. Completions may pass writes inside the hard
// block, and so may the MSI: both wait until the sequence numbers of all writes have come back.
module tlp_to_packet #(
    parameter int          WIDTH = 128,
    parameter logic [63:0] MSI_ADDRESS = 64'hFEE0_0000
) (
    input  logic                clk,
    input  logic                rst,
    input  logic                flr,

    input  logic [31:0]         data,
    input  logic                valid,
    input  logic                last,
    output logic                ready,

    output logic [WIDTH-1:0]    tdata,
    output logic [WIDTH/32-1:0] tkeep,
    output logic                tlast,
    output logic [7:0]          byte_enables,
    output logic                is_write,
    output logic                rq_valid,
    input  logic                rq_ready,
    output logic                cc_valid,
    input  logic                cc_ready,

    input  logic                writes_sent,   // no write is in the block

    output logic                msi,
    input  logic                msi_over
);
    localparam int DWS   = WIDTH / 32;
    localparam int LINES = 1028 / DWS + 1;

    typedef enum logic [2:0] {HEADER, PAYLOAD, DESCRIBE, SEND, MSI} state_t;
    state_t state;
    logic [31:0] header [4];
    logic [1:0]  index;
    logic [10:0] count;      // DWs of the packet
    logic [10:0] next;       // first DW of the next beat
    logic        dropped;    // it was made before a function-level reset
    logic        begun;      // a beat of the packet was offered

    // Lanes of one DW each, so that a beat is read at once.
    logic [31:0] lane [DWS][LINES];

    wire is_completion = header[0][28:24] == 5'b01010;
    assign is_write    = header[0][30] && !is_completion;
    wire is_long       = header[0][29];
    wire [10:0] length = header[0][9:0] == 0 ? 11'd1024 : {1'b0, header[0][9:0]};
    wire [2:0]  tc     = header[0][22:20];
    wire [2:0]  attr   = {header[0][18], header[0][13:12]};
    wire        poisoned = header[0][14];
    wire [1:0]  headers_less_one = header[0][29] ? 2'd3 : 2'd2;
    wire [63:0] address = is_long ? {header[2], header[3]} : {32'd0, header[2]};
    wire [10:0] descriptors = is_completion ? 11'd3 : 11'd4;

    // The four DWs of a descriptor of RQ, or three of CC.
    logic [31:0] descriptor [4];
    always_comb begin
        if (is_completion) begin
            descriptor[0] = {3'b000, header[1][11:0] == 0, header[1][11:0], 9'd0, header[2][6:0]};
            descriptor[1] = {header[2][31:16], 1'b0, poisoned, header[1][15:13], header[0][30] ? length : 11'd0};
            descriptor[2] = {1'b0, attr, tc, 1'b1, header[1][31:16], header[2][15:8]};
            descriptor[3] = '0;
        end else begin
            descriptor[0] = {address[31:2], 2'b00};
            descriptor[1] = address[63:32];
            descriptor[2] = {header[1][31:16], poisoned, 3'b000, is_write, length};
            descriptor[3] = {1'b0, attr, tc, 1'b1, 16'd0, header[1][15:8]};
        end
    end

    assign ready        = state == HEADER || state == PAYLOAD;
    assign byte_enables = header[1][7:0];
    wire   take         = valid && ready;
    wire [31:0] swapped = {data[7:0], data[15:8], data[23:16], data[31:24]};

    wire   sent    = rq_valid && rq_ready || cc_valid && cc_ready;
    assign rq_valid = state == SEND && !is_completion;
    assign cc_valid = state == SEND && is_completion && (begun || writes_sent);
    assign tlast    = next + 11'(DWS) >= count;
    assign msi      = state == MSI && writes_sent;
    always_comb begin
        for (int dw = 0; dw < DWS; dw++) begin
            tdata[32*dw +: 32] = lane[dw][$clog2(LINES)'(next / 11'(DWS))];
            tkeep[dw] = next + 11'(dw) < count;
        end
    end

    wire to_msi = is_write && length == 11'd1 && address == MSI_ADDRESS;

    always_ff @(posedge clk) begin
        if (rst) begin
            state   <= HEADER;
            index   <= '0;
            dropped <= 1'b0;
        end else begin
            if (flr && (valid || index != 0 || state != HEADER)) dropped <= 1'b1;
            case (state)
                HEADER: if (take) begin
                    header[index] <= data;
                    index <= index + 2'd1;
                    if (index == 2'd2 && !is_long || index == 2'd3) begin
                        index <= '0;
                        count <= descriptors;
                        state <= last ? DESCRIBE : PAYLOAD;
                    end
                end
                PAYLOAD: if (take) begin
                    lane[$clog2(DWS)'(count % 11'(DWS))][$clog2(LINES)'(count / 11'(DWS))] <= swapped;
                    count <= count + 11'd1;
                    if (last) state <= DESCRIBE;
                end
                DESCRIBE: begin
                    lane[0][0] <= descriptor[0];
                    lane[1][0] <= descriptor[1];
                    lane[2 % DWS][2 / DWS] <= descriptor[2];
                    if (!is_completion) lane[3 % DWS][3 / DWS] <= descriptor[3];
                    next  <= '0;
                    begun <= 1'b0;
                    state <= dropped || flr ? HEADER : to_msi ? MSI : SEND;
                    dropped <= 1'b0;
                end
                SEND: if (flr && !begun && !rq_valid && !cc_valid) begin
                    dropped <= 1'b0;
                    state   <= HEADER;
                end else begin
                    begun <= begun || rq_valid || cc_valid;
                    if (sent) begin
                        next <= next + 11'(DWS);
                        if (tlast) begin
                            dropped <= 1'b0;
                            state   <= HEADER;
                        end
                    end
                end
                default: if (msi_over || flr) begin
                    dropped <= 1'b0;
                    state   <= HEADER;
                end
            endcase
        end
    end

    a_length_is_announced: assert property (@(posedge clk) disable iff (rst)
        state == SEND |-> count == descriptors + (is_write || is_completion && header[0][30] ? length : 11'd0));
endmodule
