// Completer of loads of the BAR: one at a time, one completion each.
//
// A load of more than 128 B is completed with CA: the card has no such registers.
module completer (
    input  logic        clk,
    input  logic        rst,
    input  logic        flr,
    input  logic [15:0] completer_id,

    input  logic        read_valid,
    output logic        read_ready,
    input  logic [31:0] dw0,
    input  logic [31:0] dw1,
    input  logic [31:0] request_address,
    input  logic [10:0] length,

    // Address of the DW whose data are needed in the next clock.
    output logic [15:0] read_address,
    output logic        read_hold,         // the data of the last clock are still offered
    input  logic [31:0] read_data,
    // A DW of data has been sent.
    output logic        beat,

    output logic [31:0] tx_data,
    output logic        tx_valid,
    output logic        tx_last,
    input  logic        tx_ready,
    input  logic        tx_granted
);
    localparam logic [10:0] MOST_DW = 11'd32;

    typedef enum logic [2:0] {IDLE, DW0, DW1, DW2, DATA} state_t;
    state_t state;
    logic [31:0] first;      // DW 0 of the request
    logic [31:0] second;     // DW 1 of the request
    logic [15:0] address;
    logic [10:0] dws;
    logic [10:0] index;

    wire [3:0] first_be = second[3:0];
    wire [3:0] last_be  = second[7:4];
    wire is_abort = dws > MOST_DW;
    wire take = tx_valid && tx_ready;

    // Bytes without an enable before the first and after the last enabled byte.
    logic [1:0] skipped_first;
    logic [1:0] skipped_last;
    wire [3:0] end_be = last_be == 0 ? first_be : last_be;
    always_comb begin
        casez (first_be)
            4'b???1: skipped_first = 2'd0;
            4'b??10: skipped_first = 2'd1;
            4'b?100: skipped_first = 2'd2;
            4'b1000: skipped_first = 2'd3;
            default: skipped_first = 2'd0;
        endcase
        casez (end_be)
            4'b1???: skipped_last = 2'd0;
            4'b01??: skipped_last = 2'd1;
            4'b001?: skipped_last = 2'd2;
            4'b0001: skipped_last = 2'd3;
            default: skipped_last = 2'd3;
        endcase
    end
    wire is_empty = end_be == 4'b0000;
    wire [12:0] byte_count = is_empty ? 13'd1 : {dws, 2'b00} - 13'(skipped_first) - 13'(skipped_last);

    assign read_ready = state == IDLE;
    // The next DW is read while this one is sent.
    assign read_address = state == DATA && take ? address + 16'd4 : address;
    assign read_hold = state == DATA && !take;
    assign beat = state == DATA && take;
    assign tx_valid = state != IDLE;
    assign tx_last  = state == DATA ? index + 11'd1 == dws : state == DW2 && is_abort;

    always_comb begin
        case (state)
            DW0: tx_data = {is_abort ? 8'h0a : 8'h4a, first[23:16], 2'b00, first[13:12], 2'b00,
                            is_abort ? 10'd0 : dws[9:0]};
            DW1: tx_data = {completer_id, is_abort ? 3'b100 : 3'b000, 1'b0, byte_count[11:0]};
            DW2: tx_data = {second[31:16], second[15:8], 1'b0, address[6:2], skipped_first};
            default: tx_data = {read_data[7:0], read_data[15:8], read_data[23:16], read_data[31:24]};
        endcase
    end

    always_ff @(posedge clk) begin
        if (rst || flr && state == DW0 && !tx_granted) begin
            state <= IDLE;
        end else begin
            case (state)
                IDLE: if (read_valid) begin
                    first   <= dw0;
                    second  <= dw1;
                    address <= {request_address[15:2], 2'b00};
                    dws     <= length;
                    index   <= '0;
                    state   <= DW0;
                end
                DW0: if (take) state <= DW1;
                DW1: if (take) state <= DW2;
                DW2: if (take) state <= is_abort ? IDLE : DATA;
                default: if (take) begin
                    index   <= index + 11'd1;
                    address <= address + 16'd4;
                    if (tx_last) state <= IDLE;
                end
            endcase
        end
    end

    always_ff @(posedge clk) if (!rst)
        a_count_in_range: assert (state != DW1 || is_abort || byte_count >= 13'd1 && byte_count <= 13'd128);
endmodule
