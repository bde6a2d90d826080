// Packets of CQ or RC to TLPs: a stream of one DW a clock, as rtl/README.md describes it.
//
// The end of a read without a completion is a completion with status UR here if it timed out, and nothing after a
// function-level reset. A completion without a read is dropped: its tag may be that of a read that the block has not sent.
module packet_to_tlp #(
    parameter int WIDTH = 128,
    parameter bit IS_CQ = 1'b1
) (
    input  logic               clk,
    input  logic               rst,

    input  logic [WIDTH-1:0]   tdata,
    input  logic [WIDTH/32-1:0] tkeep,
    input  logic               tlast,
    input  logic [7:0]         byte_enables,   // last_be and first_be, in the first beat of CQ
    input  logic               tvalid,
    output logic               tready,

    output logic [31:0]        data,
    output logic               valid,
    output logic               last,
    output logic [2:0]         bar,
    input  logic               ready
);
    localparam int DWS        = WIDTH / 32;
    localparam int PLACES     = $clog2(DWS);
    localparam int DESCRIPTOR = IS_CQ ? 4 : 3;

    typedef enum logic [1:0] {COLLECT, HEADER, PAYLOAD, SKIP} state_t;
    state_t state;

    // The beat that is being read, and the place of its next DW.
    logic [WIDTH-1:0]  beat;
    logic [PLACES:0]   count, place;   // DWs of the beat; the place of the next one
    logic              is_last, is_full;
    wire  [31:0]       word     = beat[32 * place[PLACES-1:0] +: 32];
    wire               at_end   = place + 1'b1 == count;
    logic              step;           // the DW is taken
    assign tready = !is_full || step && at_end;

    always_ff @(posedge clk) begin
        if (rst) begin
            is_full <= 1'b0;
        end else if (tready) begin
            beat    <= tdata;
            count   <= (PLACES + 1)'($countones(tkeep));
            is_last <= tlast;
            is_full <= tvalid;
            place   <= '0;
        end else if (step) begin
            place <= place + 1'b1;
        end
    end

    logic [7:0] enables;
    logic       in_packet;
    always_ff @(posedge clk) begin
        if (rst) begin
            in_packet <= 1'b0;
        end else if (tvalid && tready) begin
            if (!in_packet) enables <= byte_enables;
            in_packet <= !tlast;
        end
    end

    logic [31:0] descriptor [4];
    logic [2:0]  index;                // of the descriptor, then of the header
    logic        ends;                 // the packet ended with its descriptor

    // Fields of the descriptor.
    wire [10:0] length    = IS_CQ ? descriptor[2][10:0] : descriptor[1][10:0];
    wire        is_write  = descriptor[2][14:11] == 4'd1;
    wire        is_long   = IS_CQ && descriptor[1] != 0;
    wire [2:0]  tc        = IS_CQ ? descriptor[3][27:25] : descriptor[2][27:25];
    wire [2:0]  attr      = IS_CQ ? descriptor[3][30:28] : descriptor[2][30:28];
    wire        poisoned  = !IS_CQ && descriptor[1][14];
    wire        has_data  = IS_CQ ? is_write : length != 0;
    wire [3:0]  error     = descriptor[0][15:12];
    wire        timed_out = !IS_CQ && error == 4'd9;
    wire        is_dropped = !IS_CQ && (error == 4'd8 || error == 4'd6);
    wire [2:0]  status    = timed_out ? 3'b001 : descriptor[1][13:11];
    wire [4:0]  kind      = IS_CQ ? 5'b00000 : 5'b01010;
    assign bar            = IS_CQ ? descriptor[3][18:16] : 3'd0;

    wire [2:0] headers = is_long ? 3'd4 : 3'd3;
    logic [31:0] header;
    always_comb begin
        case (index)
            3'd0: header = {1'b0, has_data, is_long, kind, 1'b0, tc, 1'b0, attr[2], 3'b000, poisoned, attr[1:0],
                            2'b00, length[9:0]};
            3'd1: header = IS_CQ ? {descriptor[2][31:16], descriptor[3][7:0], enables}
                                 : {descriptor[2][23:8], status, 1'b0, descriptor[0][27:16]};
            3'd2: header = !IS_CQ  ? {descriptor[1][31:16], descriptor[2][7:0], 1'b0, descriptor[0][6:0]}
                         : is_long ? descriptor[1] : {descriptor[0][31:2], 2'b00};
            default: header = {descriptor[0][31:2], 2'b00};
        endcase
    end

    assign valid = state == HEADER && !is_dropped || state == PAYLOAD && is_full;
    assign data  = state == HEADER ? header : {word[7:0], word[15:8], word[23:16], word[31:24]};
    assign last  = state == HEADER ? ends && index + 3'd1 == headers : is_last && at_end;
    assign step  = is_full && (state == COLLECT || state == SKIP || state == PAYLOAD && ready);

    always_ff @(posedge clk) begin
        if (rst) begin
            state <= COLLECT;
            index <= '0;
        end else begin
            case (state)
                COLLECT: if (step) begin
                    descriptor[index[1:0]] <= word;
                    index <= index + 3'd1;
                    if (index + 3'd1 == 3'(DESCRIPTOR)) begin
                        ends  <= is_last && at_end;
                        index <= '0;
                        state <= HEADER;
                    end
                end
                HEADER: if (is_dropped) begin
                    index <= '0;
                    state <= ends ? COLLECT : SKIP;
                end else if (ready) begin
                    index <= index + 3'd1;
                    if (index + 3'd1 == headers) begin
                        index <= '0;
                        state <= ends ? COLLECT : PAYLOAD;
                    end
                end
                default: if (step && is_last && at_end) state <= COLLECT;
            endcase
        end
    end

    a_descriptor_is_whole: assert property (@(posedge clk) disable iff (rst)
        state == COLLECT && step && is_last && at_end |-> index + 3'd1 == 3'(DESCRIPTOR));
endmodule
