// Builder of the requests of the card: reads, writes with data of the memory, and MSIs.
module request_builder #(
    parameter int BITS = 13
) (
    input  logic            clk,
    input  logic            rst,
    input  logic            flr,
    input  logic [15:0]     requester_id,

    input  logic            start,
    input  logic            is_write,
    input  logic            is_msi,
    input  logic [63:0]     address,
    input  logic [12:0]     bytes,
    input  logic [9:0]      tag,
    input  logic [BITS-1:0] own,
    input  logic [31:0]     msi_data,
    output logic            idle,
    // The first DW has been sent.
    output logic            started,
    output logic            started_is_write,
    output logic [10:0]     started_length,
    // A DW of the memory has been sent.
    output logic            beat,

    // Address whose data are needed in the next clock.
    output logic [BITS-1:0] read_address,
    output logic            read_hold,   // the data of the last clock are still offered
    input  logic [31:0]     read_data,

    output logic [31:0]     tx_data,
    output logic            tx_valid,
    output logic            tx_last,
    input  logic            tx_ready,
    input  logic            tx_granted
);
    typedef enum logic [2:0] {IDLE, DW0, DW1, HIGH, LOW, DATA} state_t;
    state_t state;
    logic            write;
    logic            msi;
    logic [63:0]     at;
    logic [12:0]     count;
    logic [9:0]      number;
    logic [BITS-1:0] from;
    logic [10:0]     index;

    wire [1:0]  offset  = at[1:0];
    wire [12:0] ends    = count + 13'(offset);
    wire [10:0] length  = 11'((ends + 13'd3) >> 2);
    wire four_dw        = at[63:32] != 0;
    wire [3:0] low_mask = 4'b1111 << offset;
    wire [3:0] end_mask = 4'b1111 >> (2'd0 - ends[1:0]);
    wire [3:0] first_be = length == 11'd1 ? low_mask & end_mask : low_mask;
    wire [3:0] last_be  = length == 11'd1 ? 4'b0000 : end_mask;
    wire take           = tx_valid && tx_ready;
    wire [31:0] payload = msi ? msi_data : read_data;

    assign idle             = state == IDLE;
    assign started          = state == DW0 && take;
    assign started_is_write = write;
    assign started_length   = length;
    assign beat             = state == DATA && take && !msi;
    assign read_address     = state == DATA && take ? from + BITS'(4) : from;
    assign read_hold        = state == DATA && !take;
    assign tx_valid         = state != IDLE;
    assign tx_last          = state == DATA ? index + 11'd1 == length : state == LOW && !write;

    always_comb begin
        case (state)
            DW0: tx_data = {1'b0, write, four_dw, 5'b00000, number[9], 3'b000, number[8], 3'b000, 6'b000000,
                            length[9:0]};
            DW1: tx_data = {requester_id, number[7:0], last_be, first_be};
            HIGH: tx_data = at[63:32];
            LOW: tx_data = {at[31:2], 2'b00};
            default: tx_data = {payload[7:0], payload[15:8], payload[23:16], payload[31:24]};
        endcase
    end

    always_ff @(posedge clk) begin
        if (rst || flr && state == DW0 && !tx_granted) begin
            state <= IDLE;
        end else begin
            case (state)
                IDLE: if (start) begin
                    write  <= is_write;
                    msi    <= is_msi;
                    at     <= address;
                    count  <= bytes;
                    number <= tag;
                    from   <= own - BITS'(address[1:0]);
                    index  <= '0;
                    state  <= DW0;
                end
                DW0: if (take) state <= DW1;
                DW1: if (take) state <= four_dw ? HIGH : LOW;
                HIGH: if (take) state <= LOW;
                LOW: if (take) state <= write ? DATA : IDLE;
                default: if (take) begin
                    index <= index + 11'd1;
                    from  <= from + BITS'(4);
                    if (tx_last) state <= IDLE;
                end
            endcase
        end
    end

    always_ff @(posedge clk) if (!rst) begin
        a_no_4k: assert (state != DW0 || {1'b0, at[11:0]} + count <= 13'd4096);
        a_has_bytes: assert (state != DW0 || count != 0);
    end
endmodule
