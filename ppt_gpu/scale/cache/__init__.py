"""What is kept between predictions."""
